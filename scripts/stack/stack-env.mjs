import { rmSync, writeFileSync } from 'node:fs';
import { SERVICES, STACK_ENV, built } from '../checkout/project.mjs';

// Where a process listens is its own affair: a replica that took them over would collide.
const NOT_SHARED = ['PORT', 'HEALTH_PORT'];

/**
 * Leaves what the running system runs with, so that a further replica can be started by hand.
 * @param {NodeJS.ProcessEnv} env what the services get
 * @param {string[]} always names that are no setting of a service but belong to the picture
 */
export function writeStackEnv(env, always) {
  const names = new Set([...always, ...SERVICES.flatMap(settingsOf)]);
  const lines = [...names]
    .filter((name) => env[name] && !NOT_SHARED.includes(name))
    .sort()
    .map((name) => `${name}=${quote(env[name] ?? '')}`);
  const head = [
    '# Written by npm start for the system that is running now. A further replica of a service:',
    '#   node --env-file=.local/stack.env dist/<users|notifications>.js',
    '#   PORT=3002 node --env-file=.local/stack.env dist/gateway.js',
  ];
  rmSync(STACK_ENV, { force: true }); // writing into an existing file would keep its mode
  writeFileSync(STACK_ENV, `${[...head, ...lines].join('\n')}\n`, { mode: 0o600 });
}

/** The file describes a running system: it goes with it. */
export function removeStackEnv() {
  rmSync(STACK_ENV, { force: true });
}

// The names that a service's configuration class declares.
/** @param {string} service */
function settingsOf(service) {
  return Object.values(built(`apps/${service}/src/config.js`))
    .flatMap((one) => Object.values(one?.settings ?? {}))
    .flatMap((setting) => setting.names ?? [])
    .flatMap((/** @type {string} */ name) => [name, `${name}_FILE`]);
}

/** @param {string} value */
function quote(value) {
  const mark = ["'", '"', '`'].find((candidate) => !value.includes(candidate)) ?? "'";
  return `${mark}${value}${mark}`;
}
