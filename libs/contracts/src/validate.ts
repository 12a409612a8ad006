import { validateSync, type ValidationError } from 'class-validator';
import { ApiError, type FieldProblem } from './error';
import { fieldsOf, objectProblem } from './fields';
import type { BodyClass, Refusal, Sent } from './message';
import { misspeltIn } from './misspelt';

const MAX_DETAILS = 20;

/**
 * Turns parsed JSON into an instance of a contract class: the same check in the gateway and in every consumer. Unknown fields are dropped, because
 * clients of later versions send more fields.
 *
 * @param path prefix of the paths in messages: `data` over HTTP, nothing over AMQP
 * @throws ApiError INVALID_ARGUMENT with the first problem as message and up to 20 problems in the details
 */
export function validateBody<T extends object>(type: BodyClass<T>, value: unknown, path = ''): T {
  const notAnObject = objectProblem(value);
  const required = value === undefined ? ' is required and' : '';
  if (notAnObject) throw invalid([{ field: path, message: `${named(path)}${required}${notAnObject}` }]);

  const body = fastPath(type, value as Sent) ?? explain(type, value as Sent, path);
  const refusal = type.refuse?.(body, value as Sent, (field) => named(path, field));
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

/**
 * Runs only the checks of the fields. Nearly every body is valid, and class-validator takes ten times as long.
 *
 * @returns undefined when the body is invalid: then class-validator finds the problems
 */
function fastPath<T extends object>(type: new () => T, value: Sent): T | undefined {
  const body = new type();
  for (const { name, check, optional, nested } of fieldsOf(type)) {
    const given = Object.hasOwn(value, name) ? value[name] : undefined;
    if (given === undefined) {
      if (optional) continue;
      return undefined;
    }
    if (check(given) !== undefined) return undefined;
    const taken = nested ? takeNested(nested(), given as Sent | Sent[]) : given;
    if (taken === undefined) return undefined;
    (body as Record<string, unknown>)[name] = taken;
  }
  return body;
}

function takeNested(type: new () => object, given: Sent | Sent[]): object | undefined {
  if (!Array.isArray(given)) return fastPath(type, given);
  const taken: object[] = [];
  for (const one of given) {
    const object = fastPath(type, one);
    if (!object) return undefined;
    taken.push(object);
  }
  return taken;
}

/** Which entries of a list class-validator judges. */
type Judged = (type: new () => object, entry: Sent) => boolean;

/** Valid entries have no problems, and class-validator takes some microseconds for each. */
const invalidOnes: Judged = (type, entry) => fastPath(type, entry) === undefined;

/** The lists whose entries are not all judged, with the places of those that are. */
type Places = Map<unknown, readonly number[]>;

/**
 * Validates with class-validator. Of a list it judges 20 entries at most, because no more problems are named.
 *
 * @returns the instance, without the entries that are not judged
 * @throws ApiError with the problems
 */
export function explain<T extends object>(type: new () => T, value: Sent, path: string, isJudged = invalidOnes): T {
  const places: Places = new Map();
  const body = instantiate(type, value, isJudged, places);
  const errors = validateSync(body, {
    stopAtFirstError: true,
    validationError: { target: false, value: false },
  });
  if (errors.length > 0) throw invalid(problemsOf(errors, path, type, value, places));
  return body;
}

/**
 * Copies the fields of a class, with free data unchanged. Not class-transformer, which is unsafe for untrusted input: it drops keys named like
 * object methods, and takes quadratic time for many keys.
 */
function instantiate<T extends object>(type: new () => T, value: Sent, isJudged: Judged, places: Places): T {
  const body = new type();
  const set = (name: string, given: unknown) => ((body as Record<string, unknown>)[name] = given);
  for (const { name, nested, check } of fieldsOf(type)) {
    if (!Object.hasOwn(value, name)) continue;
    const given = value[name];
    // A value that fails the check of its field has no further problems.
    if (!nested || check(given) !== undefined) set(name, given);
    else if (!Array.isArray(given)) set(name, instantiate(nested(), given as Sent, isJudged, places));
    else {
      const entries = given as Sent[];
      const chosen = chosenOf(entries, (entry) => isJudged(nested(), entry));
      places.set(given, chosen);
      set(
        name,
        chosen.map((index) => instantiate(nested(), entries[index], isJudged, places)),
      );
    }
  }
  return body;
}

/** Indexes of the first such entries. When there are none it is one of the others: an empty list would be another problem. */
function chosenOf(entries: readonly Sent[], isChosen: (entry: Sent) => boolean): number[] {
  const chosen: number[] = [];
  for (let index = 0; index < entries.length && chosen.length < MAX_DETAILS; index++)
    if (isChosen(entries[index])) chosen.push(index);
  return chosen.length > 0 || entries.length === 0 ? chosen : [0];
}

function problemsOf(
  errors: ValidationError[],
  path: string,
  type: new () => object,
  value: unknown,
  places: Places,
): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const misspelt = misspeltIn(type, value as Sent);
  for (const { property, constraints, children } of errors) {
    // The name of an entry is its index in the list of those that were judged.
    const key = Array.isArray(value) ? places.get(value)![Number(property)] : property;
    const field = Array.isArray(value) ? `${path}[${key}]` : named(path, property);
    const given = (value as Sent)[key];
    const own = constraints?.field;
    if (own !== undefined) {
      const sent = misspelt(property) ?? (given === undefined && isWrapped(type, value as Sent) ? 'data' : undefined);
      problems.push(fieldProblem(field, sent === undefined ? own : `${own}; ${sent} is not a field`));
    } else if (children?.length) {
      // The entries of a list have the type of the list.
      const inner =
        fieldsOf(type)
          .find(({ name }) => name === property)
          ?.nested?.() ?? type;
      problems.push(...problemsOf(children, field, inner, given, places));
    }
    if (problems.length >= MAX_DETAILS) break;
  }
  return problems.slice(0, MAX_DETAILS);
}

/** Whether a body may have around it what it has over HTTP: publishers copy that. */
const isWrapped = (type: new () => object, { data }: Sent): boolean =>
  objectProblem(data) === undefined && !fieldsOf(type).some(({ name }) => name === 'data');

/** A check may name an inner place (`[3] must be …`, `.actionUser must be …`), so the path ends at the first space. */
function fieldProblem(path: string, problem: string): FieldProblem {
  const end = problem.indexOf(' ');
  return { field: path + problem.slice(0, end), message: path + problem };
}

function invalid(problems: FieldProblem[]): ApiError {
  const [first] = problems;
  return new ApiError('INVALID_ARGUMENT', first?.message ?? 'The body is invalid.', problems);
}
