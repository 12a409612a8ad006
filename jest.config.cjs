// Nest 12 is ESM-only and this project is CommonJS. Node can require ESM, but Jest's loader cannot, so @swc/jest also compiles the
// packages listed here. A new ESM-only dependency shows as "Must use import to load ES Module: <path>": add it.
const ESM_ONLY = ['@nestjs', 'cookie', 'file-type', 'strtok3', 'token-types', 'uint8array-extras', '@tokenizer', '@borewit'];

const base = {
  rootDir: '.',
  testEnvironment: 'node',
  moduleFileExtensions: ['ts', 'js', 'json'],
  transform: {
    '^.+\\.[jt]s$': [
      '@swc/jest',
      {
        swcrc: false,
        jsc: {
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
          target: 'es2022',
          keepClassNames: true,
        },
        module: { type: 'commonjs' },
        sourceMaps: true,
      },
    ],
  },
  transformIgnorePatterns: [`/node_modules/(?!(${ESM_ONLY.join('|')})/)`],
  moduleNameMapper: { '^@app/([^/]+)/(.*)$': '<rootDir>/libs/$1/src/$2' },
  modulePathIgnorePatterns: ['<rootDir>/dist', '<rootDir>/.local'],
};

module.exports = {
  // For two cores: more workers only delay the servers under test.
  maxWorkers: 2,
  // Ends a test that hangs. It is no measure of speed: a busy machine may take five times as long as a quiet one.
  testTimeout: 120_000,
  // Freeing the memory of a worker takes longer than Jest's half second on a slow machine, and Jest then reports a leak.
  workerGracefulExitTimeout: 20_000,
  projects: [
    { ...base, displayName: 'unit', testMatch: ['<rootDir>/{apps,libs,test}/**/*.spec.ts'] },
    { ...base, displayName: 'integration', testMatch: ['<rootDir>/{apps,libs,test}/**/*.int-spec.ts'] },
    { ...base, displayName: 'e2e', testMatch: ['<rootDir>/test/e2e/**/*.e2e-spec.ts'] },
    { ...base, displayName: 'security', testMatch: ['<rootDir>/test/security/**/*.security-spec.ts'] },
    { ...base, displayName: 'faults', testMatch: ['<rootDir>/test/faults/**/*.fault-spec.ts'] },
    { ...base, displayName: 'alerts', testMatch: ['<rootDir>/test/alerts/**/*.alerts-spec.ts'] },
    { ...base, displayName: 'backup', testMatch: ['<rootDir>/test/backup/**/*.backup-spec.ts'] },
    { ...base, displayName: 'browser', testMatch: ['<rootDir>/test/browser/**/*.browser-spec.ts'] },
    { ...base, displayName: 'cluster', testMatch: ['<rootDir>/test/cluster/**/*.cluster-spec.ts'] },
    { ...base, displayName: 'neighbours', testMatch: ['<rootDir>/test/neighbours/**/*.neighbours-spec.ts'] },
    { ...base, displayName: 'containers', testMatch: ['<rootDir>/test/containers/**/*.containers-spec.ts'] },
    { ...base, displayName: 'scaling', testMatch: ['<rootDir>/test/scaling/**/*.scaling-spec.ts'] },
  ],
};
