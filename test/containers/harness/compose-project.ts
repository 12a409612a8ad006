import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { IMAGE, RUN, docker, inspect } from './docker';

/** Without .env: the passwords of the overlay are those of the compose file. */
const NO_ENV = ['--env-file', '/dev/null'];
const FILES = ['docker-compose.yml', 'test/containers/compose.yml'].flatMap((file) => ['--file', file]);

/** The system of the compose file, under a name of its own. */
export class ComposeProject {
  readonly name: string;

  constructor(
    name: string,
    private readonly env: Record<string, string> = {},
  ) {
    this.name = `${RUN}-${name}`;
  }

  /** Runs `docker compose` with this project. */
  run(args: string[], image = IMAGE): Promise<{ stdout: string; stderr: string }> {
    return promisify(execFile)(
      'docker',
      ['compose', '--ansi', 'never', '--project-name', this.name, ...NO_ENV, ...FILES, ...args],
      {
        env: { ...process.env, ...this.env, TEST_IMAGE: image },
        timeout: 300_000,
        maxBuffer: 64 * 1024 * 1024,
      },
    );
  }

  /** @returns ids of the containers of a service, those that have ended included */
  async containers(service: string): Promise<string[]> {
    const { stdout } = await this.run(['ps', '--all', '--quiet', service]);
    return stdout.split('\n').filter(Boolean);
  }

  async isHealthy(container: string): Promise<boolean> {
    return (await inspect(container)).State.Health?.Status === 'healthy';
  }

  async remove(): Promise<void> {
    await this.run(['down', '--volumes', '--remove-orphans', '--timeout', '5']).catch(() => undefined);
  }

  /** The networks of the compose file: a container beside it needs both. */
  networks(): string[] {
    return ['broker', 'database'].map((network) => `${this.name}_${network}`);
  }

  async removeContainer(id: string): Promise<void> {
    await docker('rm', '--force', '--volumes', id);
  }
}
