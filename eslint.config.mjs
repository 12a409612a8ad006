import js from '@eslint/js';
import { defineConfig, globalIgnores } from 'eslint/config';
import globals from 'globals';
import tseslint from 'typescript-eslint';

const TYPESCRIPT = ['apps/**/*.ts', 'libs/**/*.ts', 'test/**/*.ts', 'bench/**/*.ts'];
const PRODUCTION = ['apps/**/*.ts', 'libs/**/*.ts'];
const TESTS = ['**/*spec.ts', '{apps,libs}/*/test/**/*.ts', 'libs/testing/**/*.ts', 'test/**/*.ts'];
const COMMAND_LINE = ['{apps,libs}/*/src/**/*.main.ts', 'libs/runtime/src/tool-output.ts'];

// A later `no-restricted-syntax` replaces an earlier one, so the lists are joined at their use.
const EVERYWHERE = [
  {
    selector: 'MethodDefinition[kind="constructor"] > FunctionExpression[params.length>6]',
    message: 'More than six collaborators: this class does more than one thing.',
  },
];
const IN_SPECS = [
  {
    selector: 'MemberExpression[object.name=/^(describe|it|test)$/][property.name=/^(only|skip|todo|failing)$/]',
    message: 'A focused test hides the others, and a skipped one is believed to run.',
  },
  {
    selector:
      'CallExpression[callee.name=/^[fx](describe|it|test)$/], CallExpression[callee.object.name=/^[fx](describe|it|test)$/]',
    message: 'A focused test hides the others, and a skipped one is believed to run.',
  },
  {
    selector: 'NewExpression[callee.name="Promise"] > :function[params.length=1] CallExpression[callee.name="setTimeout"]',
    message: 'A sleep is too short on a slow machine and too long on a fast one: wait for the signal itself.',
  },
  {
    selector: 'ImportDeclaration[source.value=/^(node:)?timers.promises$/]',
    message: 'A sleep is too short on a slow machine and too long on a fast one: wait for the signal itself.',
  },
];

export default defineConfig(
  globalIgnores(['dist/', '.local/', 'coverage/']),
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  js.configs.recommended,
  {
    files: TYPESCRIPT,
    extends: [tseslint.configs.recommendedTypeChecked],
    // One program for all files: with a language service for each, the linter takes a quarter more.
    languageOptions: { parserOptions: { project: './tsconfig.json', tsconfigRootDir: import.meta.dirname } },
    rules: {
      // A type imported as a value loads its module. The rule skips files with decorators, because Nest needs these classes as values.
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      // An import of only types must disappear completely when it is compiled.
      '@typescript-eslint/no-import-type-side-effects': 'error',
      // A new error status or queue must be handled in every switch.
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      // Without await, a promise returned from a try block bypasses its catch and finally.
      '@typescript-eslint/return-await': ['error', 'error-handling-correctness-only'],
      // A rejection is not always an Error.
      '@typescript-eslint/use-unknown-in-catch-callback-variable': 'error',
      // A deprecated call is cheapest to replace before more code depends on it.
      '@typescript-eslint/no-deprecated': 'error',
      // Off: a function that returns a Promise should be async even without await, so that it rejects instead of throwing.
      '@typescript-eslint/require-await': 'off',
      // An empty interface with a parent gives a class the fields of a type.
      '@typescript-eslint/no-empty-object-type': ['error', { allowInterfaces: 'with-single-extends' }],
      // A leading underscore marks a needed position with an unused value.
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // `== null` means "null or undefined". Every other == converts types.
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-restricted-syntax': ['error', ...EVERYWHERE],
      'no-restricted-imports': [
        'error',
        {
          paths: [
            {
              name: '@nestjs/common',
              importNames: ['forwardRef'],
              message: 'It hides a cycle: move the shared code to a third file.',
            },
          ],
          patterns: [{ regex: '^\\..*/(apps|libs)/', message: 'Import another library as @app/<library>/<file>.' }],
        },
      ],
    },
  },
  {
    files: PRODUCTION,
    ignores: TESTS,
    rules: {
      // Logs are JSON lines of the logger. Other text on stdout would break log readers.
      'no-console': 'error',
      // A file that does not fit in one reading does more than one thing.
      'max-lines': ['error', { max: 250 }],
    },
  },
  {
    files: PRODUCTION,
    ignores: [...TESTS, 'libs/runtime/src/settings/settings.ts'],
    rules: {
      // A variable that is read elsewhere is neither validated nor documented: both come from the config classes.
      'no-restricted-properties': ['error', { object: 'process', property: 'env', message: 'Declare it in a config.ts.' }],
    },
  },
  {
    files: COMMAND_LINE,
    // Their result is their output.
    rules: { 'no-console': 'off' },
  },
  {
    files: TESTS,
    rules: {
      // Off: tests read untyped JSON, and Jest's matchers have the type any.
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      // Off: expect(object.method) compares a function and does not call it.
      '@typescript-eslint/unbound-method': 'off',
    },
  },
  {
    files: ['**/*spec.ts'],
    rules: { 'no-restricted-syntax': ['error', ...EVERYWHERE, ...IN_SPECS] },
  },
  {
    files: ['{apps,libs,test}/**/index.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector: 'Program',
          message: 'A barrel file loads its whole folder and creates import cycles: import the file itself.',
        },
      ],
    },
  },
  {
    files: ['**/*.mjs'],
    languageOptions: { globals: globals.node },
    // A file that does not fit in one reading does more than one thing.
    rules: { 'max-lines': ['error', { max: 250 }], eqeqeq: ['error', 'always', { null: 'ignore' }] },
  },
  {
    files: ['examples/bell/*.js', 'apps/operator/public/*.js'],
    languageOptions: { globals: globals.browser, sourceType: 'module' },
  },
  {
    files: ['**/*.cjs'],
    languageOptions: { globals: globals.node, sourceType: 'commonjs' },
  },
);
