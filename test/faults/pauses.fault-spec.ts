import { expireUnconsumed, pause } from './harness/faults';
import { describeFaults } from './harness/run-fault';

/** Longer than the timeout of a call plus one second. */
const MS = 6000;

describeFaults('frozen processes', [
  pause(
    'a writer',
    MS,
    ({ writers }) => writers[0]?.process.kill('SIGSTOP'),
    ({ writers }) => writers[0]?.process.kill('SIGCONT'),
  ),
  pause(
    'both writers',
    MS,
    ({ writers }) => writers.forEach(({ process }) => process.kill('SIGSTOP')),
    ({ writers }) => writers.forEach(({ process }) => process.kill('SIGCONT')),
  ),
  pause(
    'the broker',
    MS,
    ({ broker }) => broker.order('pause'),
    ({ broker }) => broker.order('resume'),
  ),
  pause(
    'PostgreSQL',
    MS,
    ({ database }) => database.order('pause'),
    ({ database }) => database.order('resume'),
  ),
  expireUnconsumed(MS),
]);
