import { commandLine, parentOf } from './processes.mjs';

/**
 * Says when the process that started us has gone. npm hands a SIGTERM to nobody and just ends, and some shells stay between npm
 * and us until we end: then it is npm that is watched.
 * @param {() => void} onGone called once
 */
export function watchParent(onGone) {
  const parent = process.ppid;
  if (parent <= 1) return;
  const behindShell = process.env.npm_lifecycle_event && / -c .*scripts\//.test(commandLine(parent));
  const grandparent = behindShell ? parentOf(parent) : 0;
  const gone = () => process.ppid !== parent || (grandparent > 1 && parentOf(parent) !== grandparent);
  const timer = setInterval(() => {
    if (!gone()) return;
    clearInterval(timer);
    onGone();
  }, 1_000);
  timer.unref();
}
