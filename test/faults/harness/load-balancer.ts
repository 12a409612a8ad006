import type { Gateway } from './cluster';

const LOOK_EVERY_MS = 100;

type Target = Pick<Gateway, 'process' | 'url'>;

/** Sends calls in turn to the ready gateways, like a load balancer in front of them. */
export class LoadBalancer {
  private ready: Target[];
  private turn = 0;
  private readonly timer = setInterval(() => void this.look(), LOOK_EVERY_MS);

  constructor(private readonly gateways: readonly Target[]) {
    this.ready = [...gateways];
  }

  next(): string | undefined {
    return this.ready[this.turn++ % this.ready.length]?.url;
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
