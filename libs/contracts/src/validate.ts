import { validateSync, type ValidationError } from 'class-validator';
import { distance } from 'fastest-levenshtein';
import { ApiError, type FieldProblem } from './error';
import { fieldsOf, objectProblem } from './fields';
import type { BodyClass, Refusal } from './message';

const MAX_DETAILS = 20;

/** Letters by which a misspelt name may differ from a field's. */
const MISSPELT = 2;
/** Unknown fields that are compared with a missing one. */
const MAX_COMPARED = 100;

/**
 * Turns parsed JSON into an instance of a contract class: the same check in the gateway and in every consumer. Unknown fields are dropped, because
 * clients of later versions send more fields.
 *
 * @param path prefix of the paths in messages: `data` over HTTP, nothing over AMQP
 * @throws ApiError INVALID_ARGUMENT with the first problem as message and up to 20 problems in the details
 */
export function validateBody<T extends object>(type: BodyClass<T>, value: unknown, path = ''): T {
  const notAnObject = objectProblem(value);
  if (notAnObject) throw invalid([{ field: path, message: `${named(path)}${notAnObject}` }]);

  const body = fastPath(type, value as Values) ?? explain(type, value as Values, path);
  const refusal = type.refuse?.(body, value as Values, (field) => named(path, field));
  if (refusal) throw invalid(problemsOfRule(refusal, path));
  return body;
}

/** A field of the body at `path`, or that body. */
function named(path: string, field?: string): string {
  if (field === undefined) return path || 'The body';
  return path ? `${path}.${field}` : field;
}

/** Over HTTP the field of such a problem has always been `data`. Over AMQP the body has no name, so each field has an entry. */
const problemsOfRule = ({ fields, message }: Refusal, path: string): FieldProblem[] =>
  (path ? [path] : fields).map((field) => ({ field, message }));

type Values = Readonly<Record<string, unknown>>;

/**
 * Runs only the checks of the fields. Nearly every body is valid, and class-validator takes ten times as long.
 *
 * @returns undefined when the body is invalid: then class-validator finds the problems
 */
function fastPath<T extends object>(type: new () => T, value: Values): T | undefined {
  const body = new type();
  for (const { name, check, optional, nested } of fieldsOf(type)) {
    const given = Object.hasOwn(value, name) ? value[name] : undefined;
    if (given === undefined) {
      if (optional) continue;
      return undefined;
    }
    if (check(given) !== undefined) return undefined;
    const taken = nested ? takeNested(nested(), given as Values | Values[]) : given;
    if (taken === undefined) return undefined;
    (body as Record<string, unknown>)[name] = taken;
  }
  return body;
}

function takeNested(type: new () => object, given: Values | Values[]): object | undefined {
  if (!Array.isArray(given)) return fastPath(type, given);
  const taken: object[] = [];
  for (const one of given) {
    const object = fastPath(type, one);
    if (!object) return undefined;
    taken.push(object);
  }
  return taken;
}

/** Validates with class-validator. @returns the instance @throws ApiError with the problems */
export function explain<T extends object>(type: new () => T, value: Values, path: string): T {
  const body = instantiate(type, value);
  const errors = validateSync(body, {
    stopAtFirstError: true,
    validationError: { target: false, value: false },
  });
  if (errors.length > 0) throw invalid(problemsOf(errors, path, type, value));
  return body;
}

/**
 * Copies the fields of a class, with free data unchanged. Not class-transformer, which is unsafe for untrusted input: it drops keys named like
 * object methods, and takes quadratic time for many keys.
 */
function instantiate<T extends object>(type: new () => T, value: Values): T {
  const body = new type();
  for (const { name, nested } of fieldsOf(type)) {
    if (!Object.hasOwn(value, name)) continue;
    const given = value[name];
    const object = (one: unknown) => (nested && !objectProblem(one) ? instantiate(nested(), one as Values) : one);
    (body as Record<string, unknown>)[name] = nested && Array.isArray(given) ? given.map(object) : object(given);
  }
  return body;
}

function problemsOf(errors: ValidationError[], path: string, type: new () => object, value: unknown): FieldProblem[] {
  const problems: FieldProblem[] = [];
  for (const error of errors) {
    const field = /^\d+$/.test(error.property) ? `${path}[${error.property}]` : named(path, error.property);
    const given = (value as Values)[error.property];
    const own = error.constraints?.field;
    if (own !== undefined) problems.push(fieldProblem(field, own + misspelt(type, value as Values, error.property)));
    else if (error.children?.length) {
      // The entries of a list have the type of the list.
      const inner =
        fieldsOf(type)
          .find(({ name }) => name === error.property)
          ?.nested?.() ?? type;
      problems.push(...problemsOf(error.children, field, inner, given));
    }
    if (problems.length >= MAX_DETAILS) break;
  }
  return problems.slice(0, MAX_DETAILS);
}

/** Names the unknown field that a missing one may be, because unknown fields are dropped in silence. */
function misspelt(type: new () => object, value: Values, missing: string): string {
  if (value[missing] !== undefined) return '';
  const known = fieldsOf(type).map(({ name }) => name);
  const near = Object.keys(value)
    .slice(0, MAX_COMPARED)
    .find((key) => !known.includes(key) && key.length <= missing.length + MISSPELT && distance(key, missing) <= MISSPELT);
  return near === undefined ? '' : `; ${near} is not a field`;
}

/** A check may name an inner place (`[3] must be …`, `.actionUser must be …`), so the path ends at the first space. */
function fieldProblem(path: string, problem: string): FieldProblem {
  const end = problem.indexOf(' ');
  return { field: path + problem.slice(0, end), message: path + problem };
}

function invalid(problems: FieldProblem[]): ApiError {
  const [first] = problems;
  return new ApiError('INVALID_ARGUMENT', first?.message ?? 'The body is invalid.', problems);
}
