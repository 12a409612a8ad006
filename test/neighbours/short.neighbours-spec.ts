import { describeRows } from './describe-rows';

const brief = (attack: string) => ({ name: attack, attacks: [attack], seconds: 4, kill: true });

/** What npm test can afford: one attack by each kind of neighbour. How long answers take depends on what else the machine does meanwhile. */
describeRows('neighbours, the short pass', ['trickle sending', 'malformed messages', 'a stuck listener'].map(brief), {
  quietSeconds: 3,
  timed: false,
});
