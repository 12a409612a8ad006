import fc from 'fast-check';
import { ALL_EVENTS } from './all-events';
import { ALL_MESSAGES } from './all-messages';
import { ApiError } from './error';
import type { BodyClass } from './message';
import { explain, validateBody } from './validate';

describe(validateBody.name, () => {
  const examples = [
    ...ALL_MESSAGES.map(({ request, example }) => [request.name, request, example.request] as const),
    ...ALL_EVENTS.map(({ data, example }) => [data.name, data as BodyClass<object>, example] as const),
  ];

  it.each(examples)('accepts and refuses %s like class-validator', (_, type, example) => {
    const outcomeOf = (judge: () => object) => {
      try {
        return { body: judge() };
      } catch (error) {
        return (error as ApiError).toBody();
      }
    };
    const arbiter = (value: Record<string, unknown>) => {
      const body = explain(type, value, '', () => true);
      const refusal = type.refuse?.(body, value, (field = 'The body') => field);
      if (!refusal) return body;
      const { message, fields } = refusal;
      throw new ApiError(
        'INVALID_ARGUMENT',
        message,
        fields.map((field) => ({ field, message })),
      );
    };
    const anything = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.constantFrom('', ' ', 'x', '\ud800', 'a\nb', {}, [], null, [null]),
    );
    const changes = fc.array(fc.tuple(fc.nat(), anything, fc.boolean()), { maxLength: 3 });
    fc.assert(
      fc.property(changes, (chosen) => {
        const value = structuredClone(example) as Record<string, unknown>;
        // A copy, because a later change may modify it, and all runs share the constants.
        for (const [place, other, inside] of chosen) change(value, place, structuredClone(other), inside);
        expect(outcomeOf(() => validateBody(type, value))).toEqual(outcomeOf(() => arbiter(value)));
      }),
      { numRuns: 300 },
    );
  });
});

/** Replaces or removes the value at one place. */
function change(value: object, place: number, other: unknown, inside: boolean): void {
  const keys = Object.keys(value);
  if (keys.length === 0) return;
  const key = keys[place % keys.length];
  const there = (value as Record<string, unknown>)[key];
  if (inside && typeof there === 'object' && there !== null) change(there, place >> 3, other, place % 2 === 0);
  else if (other === 'x') Reflect.deleteProperty(value, key);
  else Object.assign(value, { [key]: other });
}
