import type { Gateway } from './cluster';

const LOOK_EVERY_MS = 100;

type Target = Pick<Gateway, 'process' | 'url'>;

/**
 * Sends each call to one of the ready gateways, like a load balancer in front of them. It chooses at random: in turn, a client of a steady
 * rate beside a faster one would meet the same gateway for seconds.
 */
export class LoadBalancer {
  private ready: Target[];
  private readonly timer = setInterval(() => void this.look(), LOOK_EVERY_MS);

  constructor(private readonly gateways: readonly Target[]) {
    this.ready = [...gateways];
  }

  next(): string | undefined {
    return this.ready[Math.floor(Math.random() * this.ready.length)]?.url;
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private async look(): Promise<void> {
    const answers = await Promise.all(
      this.gateways.map(async (gateway) => {
        const ready = await gateway.process.health('ready').then(
          ({ status }) => status === 200,
          () => false,
        );
        return ready ? gateway : [];
      }),
    );
    this.ready = answers.flat();
  }
}
