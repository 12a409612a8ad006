import { readFileSync } from 'node:fs';
import type { NeighbourSystem } from './neighbour-system';

const EVERY_MS = 200;
const BROKER_EVERY_MS = 1000;
const MEBIBYTE = 1024 * 1024;

interface BrokerNode {
  mem_used: number;
  mem_alarm: boolean;
  disk_free: number;
  disk_free_alarm: boolean;
}

/** Resources used in a period. Sizes in MiB. */
export interface Taken {
  /** Largest memory of one of our processes, and its name. */
  rss: number;
  of: string;
  brokerMemory: number;
  brokerDisk: number;
  alarms: string[];
}

/** Watches processes and broker until it is stopped. Without /proc it does not measure memory. */
export class Watch {
  private readonly taken: Taken = { rss: 0, of: '', brokerMemory: 0, brokerDisk: 0, alarms: [] };
  private diskBefore?: number;
  private readonly timers = [
    setInterval(() => this.lookAtProcesses(), EVERY_MS),
    setInterval(() => void this.lookAtBroker(), BROKER_EVERY_MS),
  ];

  constructor(private readonly system: NeighbourSystem) {
    void this.lookAtBroker();
  }

  stop(): Taken {
    this.timers.forEach(clearInterval);
    return this.taken;
  }

  private lookAtProcesses(): void {
    for (const [name, { pid }] of this.system.services) {
      const rss = residentMebibytes(pid);
      if (rss > this.taken.rss) Object.assign(this.taken, { rss, of: name });
    }
  }

  private async lookAtBroker(): Promise<void> {
    const nodes = await this.system.management.get<BrokerNode[]>('nodes').catch(() => []);
    for (const { mem_used: memory, mem_alarm: memoryAlarm, disk_free: disk, disk_free_alarm: diskAlarm } of nodes) {
      const { taken } = this;
      this.diskBefore ??= disk;
      taken.brokerMemory = Math.max(taken.brokerMemory, memory / MEBIBYTE);
      taken.brokerDisk = Math.max(taken.brokerDisk, (this.diskBefore - disk) / MEBIBYTE);
      if (memoryAlarm && !taken.alarms.includes('memory')) taken.alarms.push('memory');
      if (diskAlarm && !taken.alarms.includes('disk')) taken.alarms.push('disk');
    }
  }
}

/** @returns 0 when the process has ended, or without /proc */
function residentMebibytes(pid: number): number {
  try {
    const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? [];
    return Number(kilobytes ?? 0) / 1024;
  } catch {
    return 0;
  }
}
