import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, SERVICES, built } from '../checkout/project.mjs';
import { table } from './table.mjs';

/**
 * One environment variable as a reader sees it.
 * @typedef {{ name: string, description: string, fallback: string, processes: string[] }} Variable
 */

/** @typedef {{ names: [string, ...string[]], description: string, fallback: string, secret?: boolean }} Setting as libs/runtime has it */

/** @type {Record<string, string>} */
const PLACEHOLDERS = {
  AMQP_URL: 'amqp://user:password@localhost:5672',
  DATABASE_URL: 'postgres://user:password@localhost:5432/collaboration',
};

/** OpenTelemetry itself reads these in every process that sends traces: docs/tracing.md. */
export const READ_BY_OPENTELEMETRY = [
  'OTEL_RESOURCE_ATTRIBUTES',
  'OTEL_EXPORTER_OTLP_COMPRESSION',
  'OTEL_EXPORTER_OTLP_CERTIFICATE',
];

/** Every class with settings in a config.ts, under the name of the process that it configures. */
export function configurations() {
  /** @type {Record<string, { new (env: NodeJS.ProcessEnv): object, settings: Record<string, Setting> }>} */
  const found = {};
  for (const file of configFiles()) {
    for (const [name, exported] of Object.entries(built(file))) {
      // UsersMigrationConfig configures the "users migration".
      const process = name.replace(/Config$/, '').replace(/(?<=[a-z])[A-Z]/g, ' $&');
      if (exported?.settings) found[process.toLowerCase()] = exported;
    }
  }
  return found;
}

function configFiles() {
  return ['apps', 'libs']
    .flatMap((kind) => readdirSync(join(ROOT, 'dist', kind)).map((name) => join(kind, name, 'src/config.js')))
    .filter((file) => existsSync(join(ROOT, 'dist', file)))
    .sort();
}

/** @returns {Variable[]} each name once, however many read it */
function variables() {
  const found = new Map();
  /** @param {string} name */
  const entryOf = (name) => {
    if (!found.has(name))
      found.set(name, { name, meanings: new Map(), processes: new Set(), standsInFor: new Set(), fallback: 'unset' });
    return found.get(name);
  };
  for (const [process, { settings }] of Object.entries(configurations())) {
    for (const { names, description, fallback } of Object.values(settings)) {
      const [name, ...others] = names;
      const entry = entryOf(name);
      entry.processes.add(process);
      entry.meanings.set(description, [...(entry.meanings.get(description) ?? []), process]);
      if (fallback !== 'unset') entry.fallback = others.length > 0 ? `\`${others[0]}\`` : fallback;
      for (const other of others.map(entryOf)) {
        other.processes.add(process);
        other.standsInFor.add(`\`${name}\``);
        other.fallback = fallback;
      }
    }
  }
  return [...found.values()].map(({ name, meanings, processes, standsInFor, fallback }) => {
    const sentences = [...meanings].map(([text, readers]) => (meanings.size > 1 ? `For ${listOf(readers)}: ${text}` : text));
    if (standsInFor.size > 0) sentences.push(`Counts wherever one of these is unset: ${[...standsInFor].join(', ')}.`);
    return { name, description: sentences.join(' '), fallback, processes: [...processes] };
  });
}

/** @param {string[]} processes */
function listOf(processes) {
  const all = SERVICES.every((service) => processes.includes(service));
  return (all ? ['every service', ...processes.filter((one) => !SERVICES.includes(one))] : processes).join(', ');
}

/** @returns {Map<string, Variable[]>} by process; what several of them read is under "several processes", the required ones first */
function groups() {
  /** @type {Variable[]} */
  const shared = [];
  const found = new Map([['several processes', shared]]);
  for (const variable of variables()) {
    const group = variable.processes.length > 1 ? 'several processes' : variable.processes[0];
    found.set(group, [...(found.get(group) ?? []), variable]);
  }
  const rank = (/** @type {Variable} */ { fallback }) => (fallback === 'required' ? 0 : 1);
  found.get('several processes')?.sort((a, b) => rank(a) - rank(b));
  return found;
}

/** @returns {string} the rule about variables with a password */
function secretsRule() {
  const settings = Object.values(configurations()).flatMap((one) => Object.values(one.settings));
  const secrets = new Set(settings.filter(({ secret }) => secret).flatMap(({ names }) => names));
  const names = [...secrets].sort().map((name) => `\`${name}\``);
  return `A secret can come from a file: \`NAME_FILE\` is the path of a file that has the value of \`NAME\`. The file has up to 64 KiB, with or without a line break at the end, and is read at start. Secrets are ${names.join(', ')}.`;
}

/** @param {string} text */
const asCode = (text) => (text === 'required' || text === 'unset' || text.startsWith('`') ? text : `\`${text}\``);

/** The rule about secrets, and one table for each process. */
export function configurationTables() {
  const tables = [...groups()].map(([group, members]) => {
    const shared = group === 'several processes';
    const rows = members.map(({ name, description, fallback, processes }) => [
      `\`${name}\``,
      asCode(fallback),
      description,
      ...(shared ? [listOf(processes)] : []),
    ]);
    const head = ['Variable', 'Default', 'Meaning', ...(shared ? ['Read by'] : [])];
    return `**${group[0].toUpperCase()}${group.slice(1)}**\n\n${table(head, rows)}`;
  });
  return [secretsRule(), ...tables].join('\n\n');
}

/** Every variable with its default, commented out, except the two without which nothing starts. */
export function exampleEnvironment() {
  const blocks = [...groups()].map(([group, members]) => {
    const lines = members.flatMap(({ name, description, fallback }) => {
      const placeholder = PLACEHOLDERS[name];
      const value = fallback === 'required' || fallback === 'unset' || fallback.startsWith('`') ? '' : fallback;
      const unset = fallback.startsWith('`') ? ` Unset: the value of ${fallback.replaceAll('`', '')}.` : '';
      return [`# ${description.replaceAll('`', '')}${unset}`, placeholder ? `${name}=${placeholder}` : `#${name}=${value}`];
    });
    return `# --- ${group}\n${lines.join('\n')}`;
  });
  const head = [
    '# Generated by npm run docs:generate from the configuration classes. To start one process by hand:',
    '#   node --env-file=.env dist/<service>.js',
    '# npm start needs none of this.',
    `# ${secretsRule().replaceAll('`', '')}`,
  ];
  const text = [head.join('\n'), ...blocks].join('\n\n');
  return `${text}\n\n${composeVariables(text)}\n`;
}

/**
 * docker compose reads .env too, but only what the compose file names.
 * @param {string} above
 */
function composeVariables(above) {
  const text = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8');
  const defaults = new Map([...text.matchAll(/\$\{(\w+):-([^}]*)\}/g)].map(([, name, value]) => [name, value]));
  const missing = [...defaults].filter(([name]) => !new RegExp(`^#?${name}=`, 'm').test(above));
  return `# --- docker compose\n${missing.map(([name, value]) => `#${name}=${value}`).join('\n')}`;
}
