import { readFileSync } from 'node:fs';
import { Script } from './script';

afterAll(() => Script.endAll());

/** Path and body of each call in a text. */
const callsOf = (text: string) =>
  [...text.matchAll(/^curl -s http:\/\/localhost:3000(\/v1\S+).*?-d '([^']+)'/gms)].map(([, path, body]) => [
    path,
    JSON.parse(body) as unknown,
  ]);

it('prints at the end of npm start the calls of the README', async () => {
  const script = new Script(`
    import { welcome } from './scripts/stack/welcome.mjs';
    console.log(JSON.stringify(welcome('http://localhost:3000', { key: 'demo-key', token: 'demo-token' }, {})));
  `);
  const printed = callsOf((await script.next()) as string);
  expect(printed).toHaveLength(3);
  expect(callsOf(readFileSync('README.md', 'utf8'))).toEqual(printed);
});
