// npm run build:client: makes dist/client, the package that `npm publish ./dist/client` publishes. CommonJS alone, because amqplib is, and so
// that a process that both requires and imports it has one ApiError.
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, relative } from 'node:path';
import ts from 'typescript';
import { ROOT } from './checkout/project.mjs';
import { commandLine } from './processes/command-line.mjs';

commandLine({
  command: 'npm run build:client --',
  about: 'Makes dist/client, the package of the client for other services.',
  examples: { '': 'then: npm publish ./dist/client' },
});
const PACKAGE = join(ROOT, 'libs/client');
const OUT = join(ROOT, 'dist/client');
const { dependencies } = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8'));
const IMPORT = /(?<=\b(?:from|require\(|import\(|import) ?["'])[^"']+(?=["'])/g;

const emitted = compile();
rmSync(OUT, { recursive: true, force: true });
const written = ['.js', '.d.ts'].flatMap((kind) => writeReachable(join(OUT, `client/src/client${kind}`), kind));
for (const [from, name] of [
  [PACKAGE, 'package.json'],
  [PACKAGE, 'README.md'],
  [ROOT, 'LICENSE'],
])
  copyFileSync(join(from, name), join(OUT, name));
console.log(`dist/client: ${written.length} files`);

/** @returns {Map<string, string>} the text of every file that TypeScript makes, by its path */
function compile() {
  const { config } = ts.readConfigFile(join(PACKAGE, 'tsconfig.json'), ts.sys.readFile);
  const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, PACKAGE);
  const program = ts.createProgram(fileNames, { ...options, noEmitOnError: true });
  const files = new Map();
  const { diagnostics } = program.emit(undefined, (path, text) => files.set(join(path), text));
  const problems = [...ts.getPreEmitDiagnostics(program), ...diagnostics];
  if (problems.length > 0)
    fail(
      ts.formatDiagnostics(problems, {
        getNewLine: () => '\n',
        getCanonicalFileName: (name) => name,
        getCurrentDirectory: () => ROOT,
      }),
    );
  return files;
}

/**
 * Writes a file and what it imports, to the end. Types lead to contract classes that run time never loads.
 * @param {string} entry
 * @param {string} kind
 */
function writeReachable(entry, kind) {
  const found = new Set([entry]);
  for (const path of found) {
    const text = emitted.get(path);
    if (text === undefined) return fail(`${relative(OUT, path)} is imported and was not compiled.`);
    const resolved = text.replace(IMPORT, (name) => {
      const target = ours(path, name);
      if (target) {
        found.add(target + kind);
        const way = relative(dirname(path), target);
        return way.startsWith('.') ? way : `./${way}`;
      }
      if (!isAllowed(name))
        fail(`${relative(OUT, path)} imports ${name}, which a service that installs the client does not have.`);
      return name;
    });
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, resolved);
  }
  return [...found];
}

/**
 * The compiled file, without its ending, that an import of another of our files means.
 * @param {string} from
 * @param {string} name
 */
function ours(from, name) {
  if (name.startsWith('.')) return join(dirname(from), name);
  const [, library, file] = /^@app\/([^/]+)\/(.+)$/.exec(name) ?? [];
  return library && join(OUT, library, 'src', file);
}

/** @param {string} name */
function isAllowed(name) {
  return name.startsWith('node:') || builtinModules.includes(name) || Object.hasOwn(dependencies, name);
}

/** @param {string} message @returns {never} */
function fail(message) {
  console.error(message);
  process.exit(1);
}
