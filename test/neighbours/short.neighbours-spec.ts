import { describeRows } from './describe-rows';

const brief = (attack: string) => ({ name: attack, attacks: [attack], seconds: 4, kill: true });

/** What npm test can afford: one attack by each kind of neighbour. */
describeRows(
  'neighbours, the short pass',
  ['pipelining without reading', 'malformed messages', 'a stuck listener'].map(brief),
  3,
);
