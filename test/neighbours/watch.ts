import { readFileSync } from 'node:fs';
import type { Channel, ChannelModel } from 'amqplib';
import { destroySocket, isClosed, openConnection } from '@app/amqp/connection/open-connection';
import type { NeighbourSystem } from './neighbour-system';

const EVERY_MS = 200;
const BROKER_EVERY_MS = 1000;
const MEBIBYTE = 1024 * 1024;
/** No queue has this name. */
const NOWHERE = 'watch.nowhere';

interface BrokerNode {
  mem_used: number;
  disk_free: number;
}

/** Resources used in a period. Sizes in MiB. */
export interface Taken {
  /** Largest memory of one of our processes, and its name. */
  rss: number;
  of: string;
  /** As the broker counts every 5 s: a peak of a moment is missed. */
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
    setInterval(() => this.lookForAlarms(), EVERY_MS),
    setInterval(() => void this.lookAtBroker(), BROKER_EVERY_MS),
  ];

  private constructor(
    private readonly system: NeighbourSystem,
    private readonly model: ChannelModel,
    private readonly channel: Channel,
  ) {
    void this.lookAtBroker();
    model.on('error', () => undefined);
    model.on('blocked', (reason: string) => this.addAlarm(reason.includes('disk') ? 'disk' : 'memory'));
  }

  static async start(system: NeighbourSystem): Promise<Watch> {
    const model = await openConnection({ url: system.broker.url, name: 'watch' });
    return new Watch(system, model, await model.createChannel());
  }

  stop(): Taken {
    this.timers.forEach(clearInterval);
    // A blocked connection does not answer.
    destroySocket(this.model);
    return this.taken;
  }

  private addAlarm(alarm: string): void {
    if (!this.taken.alarms.includes(alarm)) this.taken.alarms.push(alarm);
  }

  /** The management API is 5 s late, and an alarm may last for one. The broker reports it to connections that publish. */
  private lookForAlarms(): void {
    if (!isClosed(this.model)) this.channel.publish('', NOWHERE, Buffer.alloc(0));
  }

  private lookAtProcesses(): void {
    for (const [name, { pid }] of this.system.services) {
      const rss = residentMebibytes(pid);
      if (rss > this.taken.rss) Object.assign(this.taken, { rss, of: name });
    }
  }

  private async lookAtBroker(): Promise<void> {
    const nodes = await this.system.management.get<BrokerNode[]>('nodes').catch(() => []);
    for (const { mem_used: memory, disk_free: disk } of nodes) {
      const { taken } = this;
      this.diskBefore ??= disk;
      taken.brokerMemory = Math.max(taken.brokerMemory, memory / MEBIBYTE);
      taken.brokerDisk = Math.max(taken.brokerDisk, (this.diskBefore - disk) / MEBIBYTE);
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
