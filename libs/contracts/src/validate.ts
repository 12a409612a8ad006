import { validateSync, type ValidationError } from 'class-validator';
import { ApiError, type FieldProblem } from './error';
import { fieldsOf, objectProblem } from './fields';
import type { BodyClass } from './message';

const MAX_DETAILS = 20;

/**
 * Turns parsed JSON into an instance of a contract class: the same check at the gateway and at every consumer. Fields that the class does
 * not know are dropped, because clients of later versions send more.
 *
 * @param path prefix of the paths in messages: `data` over HTTP, nothing over AMQP
 * @throws ApiError INVALID_ARGUMENT whose message states the first problem and whose details list up to 20
 */
export function validateBody<T extends object>(type: BodyClass<T>, value: unknown, path = ''): T {
  const notAnObject = objectProblem(value);
  if (notAnObject) throw invalid([{ field: path, message: `${path || 'The body'}${notAnObject}` }]);

  const body = instantiate(type, value as object);
  const errors = validateSync(body, {
    stopAtFirstError: true,
    validationError: { target: false, value: false },
  });
  if (errors.length > 0) throw invalid(problemsOf(errors, path));

  const refusal = type.refuse?.(body);
  if (refusal) throw invalid([{ field: path, message: refusal }]);
  return body;
}

/**
 * Takes the fields of a class, and free data as it is. class-transformer is not for untrusted input: it drops keys that are named like the
 * methods of an object, and takes quadratic time for many keys.
 */
function instantiate<T extends object>(type: new () => T, value: object): T {
  const body = new type();
  for (const [field, nested] of fieldsOf(type)) {
    if (!Object.hasOwn(value, field)) continue;
    const given = (value as Record<string, unknown>)[field];
    const object = (one: unknown) => (nested && !objectProblem(one) ? instantiate(nested(), one as object) : one);
    Object.assign(body, { [field]: nested && Array.isArray(given) ? given.map(object) : object(given) });
  }
  return body;
}

function problemsOf(errors: ValidationError[], path: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  for (const error of errors) {
    const field = /^\d+$/.test(error.property)
      ? `${path}[${error.property}]`
      : path
        ? `${path}.${error.property}`
        : error.property;
    const own = error.constraints?.field;
    if (own !== undefined) problems.push(fieldProblem(field, own));
    else if (error.children?.length) problems.push(...problemsOf(error.children, field));
    if (problems.length >= MAX_DETAILS) break;
  }
  return problems.slice(0, MAX_DETAILS);
}

/** A check may name a place further inside (`[3] must be …`, `.actionUser must be …`): the path ends at the first space. */
function fieldProblem(path: string, problem: string): FieldProblem {
  const end = problem.indexOf(' ');
  return { field: path + problem.slice(0, end), message: path + problem };
}

function invalid(problems: FieldProblem[]): ApiError {
  const [first] = problems;
  return new ApiError('INVALID_ARGUMENT', first?.message ?? 'The body is invalid.', problems);
}
