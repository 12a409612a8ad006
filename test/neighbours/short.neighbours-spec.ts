import { describeRows } from './describe-rows';

const ATTACKS = ['trickle sending', 'malformed messages', 'a stuck listener'];

/** The short selection for npm test: one attack of each kind, all at once. Answer times are not checked, because the machine may be busy. */
describeRows('neighbours, the short pass', [{ name: ATTACKS.join(', '), attacks: ATTACKS, seconds: 4, kill: true }], {
  quietSeconds: 3,
  timed: false,
});
