import js from '@eslint/js';
import { defineConfig, globalIgnores } from 'eslint/config';
import globals from 'globals';
import tseslint from 'typescript-eslint';

const TYPESCRIPT = ['apps/**/*.ts', 'libs/**/*.ts', 'test/**/*.ts', 'bench/**/*.ts'];
const PRODUCTION = ['apps/**/*.ts', 'libs/**/*.ts'];
const TESTS = ['**/*spec.ts', '{apps,libs}/*/test/**/*.ts', 'libs/testing/**/*.ts', 'test/**/*.ts'];
const COMMAND_LINE = ['{apps,libs}/*/src/**/*.main.ts', 'libs/postgres/src/migrate*.ts'];

// A later `no-restricted-syntax` replaces an earlier one: the lists are joined where they are used.
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
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // A type import that stays a value import loads its module. Files with decorators are left alone: Nest reads those classes.
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      // An import of types only must disappear altogether when it is compiled.
      '@typescript-eslint/no-import-type-side-effects': 'error',
      // A new error status or queue must show every place that decides by it.
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      // An await that a try block leaves out turns its catch and finally into decoration.
      '@typescript-eslint/return-await': ['error', 'error-handling-correctness-only'],
      // What is caught is not always an Error.
      '@typescript-eslint/use-unknown-in-catch-callback-variable': 'error',
      // A deprecated call is cheapest to replace before more code depends on it.
      '@typescript-eslint/no-deprecated': 'error',
      // Off: async without await is right where a Promise is promised, because it rejects where a plain function would throw.
      '@typescript-eslint/require-await': 'off',
      // An empty interface with a parent is how a class takes over the fields of a type.
      '@typescript-eslint/no-empty-object-type': ['error', { allowInterfaces: 'with-single-extends' }],
      // A leading underscore says that the position is needed and the value is not.
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // `== null` is the one comparison that means "null or undefined"; every other == converts.
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-restricted-syntax': ['error', ...EVERYWHERE],
      'no-restricted-imports': [
        'error',
        {
          paths: [
            {
              name: '@nestjs/common',
              importNames: ['forwardRef'],
              message: 'It hides a cycle: move what both need to a third file.',
            },
          ],
          patterns: [{ regex: '^\\..*/(apps|libs)/', message: 'Another library is @app/<library>/<file>.' }],
        },
      ],
    },
  },
  {
    files: PRODUCTION,
    ignores: TESTS,
    rules: {
      // Logs are JSON lines of the logger; text on stdout would break whatever reads them.
      'no-console': 'error',
      // A file that does not fit in one reading does more than one thing.
      'max-lines': ['error', { max: 250 }],
    },
  },
  {
    files: PRODUCTION,
    ignores: [...TESTS, '**/config.ts'],
    rules: {
      // A variable read elsewhere is checked by nobody and missing from the documentation, which is made of the config classes.
      'no-restricted-properties': ['error', { object: 'process', property: 'env', message: 'Read it in config.ts.' }],
    },
  },
  {
    files: COMMAND_LINE,
    // What they print is their result.
    rules: { 'no-console': 'off' },
  },
  {
    files: TESTS,
    rules: {
      // Off: a test reads JSON as it came, and Jest's matchers are typed any.
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
          message: 'A barrel loads its whole folder and closes cycles that no single file has: import the file.',
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
    files: ['**/*.cjs'],
    languageOptions: { globals: globals.node, sourceType: 'commonjs' },
  },
);
