import { readFileSync } from 'node:fs';

const packageOf = (directory: string) =>
  JSON.parse(readFileSync(`${directory}package.json`, 'utf8')) as {
    version: string;
    engines: object;
    dependencies: Record<string, string>;
  };

describe('the client', () => {
  it('has the version, the engines and the amqplib of the system', () => {
    const [ours, own] = [packageOf(''), packageOf('libs/client/')];
    expect(own.version).toBe(ours.version);
    expect(own.engines).toEqual(ours.engines);
    expect(own.dependencies).toEqual({ amqplib: ours.dependencies.amqplib });
  });
});
