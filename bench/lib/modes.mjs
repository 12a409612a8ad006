/**
 * How much is measured. Only what `default` and `full` find is written into the documentation.
 * @typedef {object} Mode
 * @property {number} rounds of everything that is judged
 * @property {number} seriesRounds of what is only drawn
 * @property {number} seconds of one measurement
 * @property {number} warmUpSeconds before it
 * @property {number[]} connections of the plot
 * @property {number[]} shares of the peak, for the latency
 * @property {number[]} sizes stored notifications
 * @property {number} pageSeconds of one measurement of one combination of filters
 * @property {number} deletedRecipients of a document that is deleted
 * @property {number} commands published and drained in a round
 * @property {number} idleSeconds
 * @property {number} soakSeconds
 */
const DEFAULT = {
  rounds: 5,
  seriesRounds: 3,
  seconds: 4,
  warmUpSeconds: 1,
  connections: [1, 4, 16, 64, 256],
  shares: [0.1, 0.3, 0.5, 0.7, 0.85, 0.95],
  sizes: [10_000, 1_000_000],
  pageSeconds: 1,
  deletedRecipients: 100_000,
  commands: 20_000,
  idleSeconds: 30,
  soakSeconds: 60,
};

/** @type {Record<string, Mode>} */
export const MODES = {
  default: DEFAULT,
  full: { ...DEFAULT, sizes: [10_000, 1_000_000, 10_000_000], soakSeconds: 600 },
  quick: {
    rounds: 1,
    seriesRounds: 1,
    seconds: 1,
    warmUpSeconds: 0.3,
    connections: [4, 64],
    shares: [0.3, 0.7],
    sizes: [10_000, 50_000],
    pageSeconds: 0.3,
    deletedRecipients: 20_000,
    commands: 3000,
    idleSeconds: 5,
    soakSeconds: 5,
  },
};
