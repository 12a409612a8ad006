import { readFileSync, readdirSync } from 'node:fs';

/** Ticks in /proc are of 10 ms on every Linux that Node runs on, whatever the kernel's own clock. */
const TICKS_PER_SECOND = 100;

/**
 * CPU seconds that processes have used so far, each with its descendants.
 * @param {Record<string, number | undefined>} pids
 * @returns {Record<string, number> | undefined} undefined without /proc
 */
export function cpuSeconds(pids) {
  if (process.platform !== 'linux') return undefined;
  const all = readStats();
  const childrenOf = groupByParent(all);
  /** @param {number | undefined} pid @returns {number} */
  const sum = (pid) => {
    const own = pid && all.get(pid);
    if (!own) return 0;
    return own.ticks + (childrenOf.get(own.pid) ?? []).reduce((total, child) => total + sum(child.pid), 0);
  };
  return Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, sum(pid) / TICKS_PER_SECOND]));
}

/** @typedef {{ pid: number, parent: number, ticks: number }} Stat */

/** @param {Map<number, Stat>} all */
function groupByParent(all) {
  /** @type {Map<number, Stat[]>} */
  const groups = new Map();
  for (const entry of all.values()) groups.set(entry.parent, [...(groups.get(entry.parent) ?? []), entry]);
  return groups;
}

function readStats() {
  /** @type {Map<number, Stat>} */
  const found = new Map();
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'latin1');
      // The name of the program is in brackets and may hold anything.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const [parent, ...times] = [fields[1], ...fields.slice(11, 15)].map(Number);
      // With what its ended children had used.
      const ticks = times.reduce((total, time) => total + time, 0);
      found.set(Number(entry), { pid: Number(entry), parent, ticks });
    } catch {
      // It has ended meanwhile.
    }
  }
  return found;
}

/**
 * Watches how busy the machine is, other virtual machines on the same host included.
 * @returns {() => number | undefined} share of the time of all processors since the call; undefined without /proc
 */
export function watchBusy() {
  const before = processorTicks();
  return () => {
    const after = processorTicks();
    return before && after && 1 - (after.idle - before.idle) / Math.max(1, after.all - before.all);
  };
}

/**
 * Watches what other virtual machines on the same host take: time that our processors were wanted for and did not get (steal in /proc/stat).
 * @returns {() => number | undefined} its share of all time since the call; undefined without /proc
 */
export function watchStolen() {
  const before = processorTicks();
  return () => {
    const after = processorTicks();
    return before && after && (after.stolen - before.stolen) / Math.max(1, after.all - before.all);
  };
}

function processorTicks() {
  if (process.platform !== 'linux') return undefined;
  const [total] = readFileSync('/proc/stat', 'latin1').split('\n', 1);
  // user, nice, system, idle, iowait, irq, softirq, steal; what follows is counted in user already.
  const ticks = total.trim().split(/\s+/).slice(1, 9).map(Number);
  return { all: ticks.reduce((sum, time) => sum + time, 0), idle: ticks[3] + ticks[4], stolen: ticks[7] ?? 0 };
}

/**
 * Resident memory in bytes and open file descriptors of one process.
 * @param {number} pid
 */
export function footprint(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  return {
    memory: Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) * 1024,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
  };
}
