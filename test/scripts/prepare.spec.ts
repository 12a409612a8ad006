import { Script } from './script';

afterEach(() => Script.endAll());

it('the output of a build that fails is shown as it is, and ends the script with 1', async () => {
  const { code, stderr } = await new Script(`
    import { orEnd } from './scripts/checkout/prepare.mjs';
    import { runQuietly } from './scripts/processes/command.mjs';
    await orEnd(() => runQuietly('sh', ['-c', 'echo "x.ts:1"; echo "does not compile"; exit 3'], { name: 'The build' }));
  `).outcome();
  expect({ code, stderr }).toEqual({ code: 1, stderr: 'x.ts:1\ndoes not compile\n\nThe build failed (3)\n' });
});
