import * as fc from 'fast-check';
import { DOCUMENTS, LEVELS } from './inbox-model';

/** Ids of users. */
export const USERS = ['u1', 'u2'];
const LOCATIONS = [undefined, 'l1', 'l2'];
const IDS = Array.from({ length: 10 }, (_, n) => `n${n}`);
/** Timestamps lie around the moment up to which everything is settled, which an open transaction holds: some are too young for the mark. */
export const AROUND_MS = 20;

/** Operations on one organization, of each kind. */
export const STEPS = {
  add: fc.record({
    act: fc.constant('add' as const),
    id: fc.constantFrom(...IDS),
    at: fc.integer({ min: -AROUND_MS, max: AROUND_MS }),
    document: fc.constantFrom(...DOCUMENTS),
    location: fc.constantFrom(...LOCATIONS),
    to: fc.subarray(USERS),
    notifyAll: fc.boolean(),
  }),
  remove: fc.record({ act: fc.constant('delete' as const), id: fc.constantFrom(...IDS) }),
  expire: fc.record({ act: fc.constant('expire' as const), id: fc.constantFrom(...IDS) }),
  free: fc.record({ act: fc.constant('free' as const) }),
  join: fc.record({
    act: fc.constantFrom<'join' | 'end'>('join', 'end'),
    user: fc.constantFrom(...USERS),
    level: fc.constantFrom(...LEVELS),
  }),
  leave: fc.record({ act: fc.constant('leave' as const), user: fc.constantFrom(...USERS) }),
  document: fc.record({
    act: fc.constant('document' as const),
    document: fc.constantFrom(...DOCUMENTS),
    folder: fc.constantFrom(undefined, 'f0', 'f1'),
    access: fc.constantFrom('public', 'organizationPrivate', 'restricted'),
  }),
  mark: fc.record({
    act: fc.constant('mark' as const),
    pairs: fc.uniqueArray(fc.record({ id: fc.constantFrom(...IDS), userId: fc.constantFrom(...USERS), read: fc.boolean() }), {
      selector: ({ id, userId }) => `${id} ${userId}`,
      minLength: 3,
      maxLength: 20,
    }),
  }),
  upTo: fc.record({
    act: fc.constant('upTo' as const),
    user: fc.constantFrom(...USERS),
    at: fc.integer({ min: -AROUND_MS - 1, max: AROUND_MS }),
  }),
};
/** Any of them. */
export const step = fc.oneof(
  { weight: 5, arbitrary: STEPS.add },
  { weight: 4, arbitrary: STEPS.remove },
  { weight: 2, arbitrary: STEPS.expire },
  { weight: 4, arbitrary: STEPS.free },
  { weight: 4, arbitrary: STEPS.join },
  { weight: 1, arbitrary: STEPS.leave },
  { weight: 3, arbitrary: STEPS.document },
  { weight: 5, arbitrary: STEPS.mark },
  { weight: 5, arbitrary: STEPS.upTo },
);
export type Step = { [K in keyof typeof STEPS]: (typeof STEPS)[K] extends fc.Arbitrary<infer T> ? T : never }[keyof typeof STEPS];
