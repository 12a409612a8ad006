/** The rows of `npm run test:cluster`, in order: the last one leaves no standby. */
/** @typedef {import('./bounds.ts').Row} Row */

const KILLED = { pauseMs: 1000 };
const ORDERLY = { pauseMs: 500, everyRead: true };
/** Silence must be noticed first. */
const SILENT = { pauseMs: 16_000 };
const BACK = { recoveredMs: 10_000 };

/** @type {Row[]} */
export const ROWS = [
  { name: 'SIGKILL of the broker with the leader of the commands', fault: 'killLeader', ...KILLED },
  { name: 'SIGKILL of a broker that a gateway is connected to', fault: 'killBrokerOfGateway', ...KILLED },
  { name: 'SIGKILL of two of three brokers', fault: 'killTwoBrokers', refusedMs: 1000, ...BACK },
  { name: 'a broker partitioned away, 30 s', fault: 'partition', ...SILENT },
  { name: 'SIGSTOP of a broker, 20 s', fault: 'freezeBroker', ...SILENT },
  { name: 'brokers restarted in turn', fault: 'restartBrokers', ...ORDERLY },
  { name: 'a broker removed, and an empty one added', fault: 'replaceBroker', ...ORDERLY },
  { name: 'SIGKILL of every process in turn', fault: 'killProcesses', ...KILLED },
  { name: 'every process restarted in turn', fault: 'restartProcesses', ...ORDERLY },
  { name: 'one gateway cut off from the brokers, then the other, 20 s each', fault: 'cutOffGateways', pauseMs: 1000 },
  { name: 'everything restarted in turn', fault: 'restartEverything', ...ORDERLY },
  { name: 'the standby gone, 15 s', fault: 'loseStandby', openOutcomes: true, ...BACK },
  { name: 'primary killed, standby promoted', fault: 'failOver', ...BACK },
];
