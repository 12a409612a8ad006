import { describeRows } from './describe-rows';

const brief = (attack: string) => ({ name: attack, attacks: [attack], seconds: 4, kill: true });

/** The short selection for npm test: one attack of each kind. Answer times are not checked, because the machine may be busy. */
describeRows('neighbours, the short pass', ['trickle sending', 'malformed messages', 'a stuck listener'].map(brief), {
  quietSeconds: 3,
  timed: false,
});
