const TEST = '(spec\\.ts$|^libs/testing/|^(apps|libs)/[^/]+/test/|^test/)';
const PRODUCTION = { path: '^(apps|libs)/', pathNot: TEST };

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'no-cycles',
      comment:
        'In a cycle one file sees the other half loaded: a class is undefined, and Nest reports something else. A cycle of types becomes one of values with the next edit.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-app-imports-an-app',
      comment: 'Apps meet on the broker only: what both need to know is a contract.',
      severity: 'error',
      from: { path: '^apps/([^/]+)/' },
      to: { path: '^apps/', pathNot: '^apps/$1/' },
    },
    {
      name: 'no-lib-imports-an-app',
      comment: 'A library that knows an app is a part of that app.',
      severity: 'error',
      from: { path: '^libs/' },
      to: { path: '^apps/' },
    },
    {
      name: 'contracts-stand-alone',
      comment:
        'Contracts say what a message is. How it travels, where it is kept and which framework serves it must stay free to change.',
      severity: 'error',
      from: { path: '^libs/contracts/', pathNot: TEST },
      to: { path: ['^libs/(?!contracts/)', 'node_modules/(@nestjs|fastify|amqplib|typeorm|pg|pino|rxjs)(/|$)'] },
    },
    {
      name: 'db-knows-no-contract',
      comment: 'Rows outlive messages: a new field on the wire must not change a table by itself.',
      severity: 'error',
      from: { path: '^apps/[^/]+/src/db/', pathNot: TEST },
      to: { path: '^libs/contracts/', pathNot: '^libs/contracts/src/event-types\\.ts$' },
    },
    {
      name: 'event-types-are-a-leaf',
      comment: 'Statements import them: what they would import reached the database layer with them.',
      severity: 'error',
      from: { path: '^libs/contracts/src/event-types\\.ts$' },
      to: {},
    },
    {
      name: 'no-handler-imports-a-handler',
      comment: 'A handler is one operation, top to bottom: what two of them share is a file of its own, beneath both.',
      severity: 'error',
      from: { path: '^apps/[^/]+/src/(commands|queries|events)/', pathNot: TEST },
      to: { path: '(\\.handler|/events/[^/]+)\\.ts$', pathNot: '^libs/' },
    },
    {
      name: 'no-controller-imports-a-controller',
      comment: 'A controller is one resource of the API: what two of them share belongs in http/.',
      severity: 'error',
      from: { path: '\\.controller\\.ts$' },
      to: { path: '\\.controller\\.ts$' },
    },
    {
      name: 'testing-only-from-tests',
      comment: 'Test helpers in production code would ship, with the rights that tests have.',
      severity: 'error',
      from: { path: '^(apps|libs)/', pathNot: TEST },
      to: { path: '^libs/testing/' },
    },
    {
      name: 'nothing-imports-the-benchmark',
      comment: 'What is measured must not know that it is, and the image has no bench/.',
      severity: 'error',
      from: { pathNot: '^bench/' },
      to: { path: '^bench/' },
    },
    {
      name: 'baselines-share-no-code-with-us',
      comment: 'A baseline that runs our code would become faster with it, and the ratio would say nothing.',
      severity: 'error',
      from: { path: '^bench/(plain|direct)/' },
      to: { path: '^(apps|libs|scripts)/' },
    },
    {
      name: 'amqp-knows-no-framework',
      comment:
        'It is the part of the transport that the published client shares, for services that have neither Nest nor our metrics.',
      severity: 'error',
      from: { path: '^libs/amqp/', pathNot: TEST },
      to: { path: ['^libs/(?!(amqp|contracts)/)', 'node_modules/(@nestjs|prom-client|rxjs)(/|$)'] },
    },
    {
      name: 'client-needs-amqplib-only',
      comment:
        'Other services install it: what it loads they install as well. npm run build:client follows every import to the end.',
      severity: 'error',
      from: { path: '^libs/client/', pathNot: TEST },
      to: { path: ['^libs/(?!(client|amqp|contracts)/)', 'node_modules/(?!amqplib/|@types/)'] },
    },
    {
      name: 'services-load-no-operator-tools',
      comment: 'They use the full-rights account, which no service has.',
      severity: 'error',
      from: { path: '^(apps|libs/(?!(rabbitmq-admin|api-docs)/))', pathNot: TEST },
      to: { path: '^libs/rabbitmq-admin/' },
    },
    {
      name: 'documents-are-generated-apart',
      comment: 'Generators need every contract, the topology and the accounts: the gateway serves the committed files.',
      severity: 'error',
      from: { path: '^(apps|libs/(?!api-docs/))', pathNot: TEST },
      to: { path: '^libs/api-docs/' },
    },
    {
      name: 'rabbitmq-and-postgres-apart',
      comment: 'Broker and database meet in a service, which decides what is committed before what is acknowledged.',
      severity: 'error',
      from: { path: '^libs/(amqp|rabbitmq)/', pathNot: TEST },
      to: { path: '^libs/postgres/' },
    },
    {
      name: 'postgres-and-rabbitmq-apart',
      comment: 'The same, seen from the database.',
      severity: 'error',
      from: { path: '^libs/postgres/', pathNot: TEST },
      to: { path: '^libs/(amqp|rabbitmq)/' },
    },
    {
      name: 'runtime-knows-no-infrastructure',
      comment: 'Every process needs the runtime, the ones without a broker or a database too.',
      severity: 'error',
      from: { path: '^libs/runtime/', pathNot: TEST },
      to: { path: ['^libs/(rabbitmq|postgres|contracts)/', 'node_modules/(amqplib|typeorm|pg)(/|$)'] },
    },
    {
      name: 'gateway-has-no-database',
      comment: 'The gateway asks the services: a second reader of their tables would freeze them.',
      severity: 'error',
      from: { path: '^apps/gateway/', pathNot: TEST },
      to: { path: ['^libs/postgres/', 'node_modules/(typeorm|pg)(/|$)'] },
    },
    {
      name: 'no-build-output',
      comment: 'dist/ is as old as the last build; the source is next to it.',
      severity: 'error',
      from: {},
      to: { path: '(^|/)dist/', pathNot: 'node_modules' },
    },
    {
      name: 'no-dev-dependency-in-production',
      comment: 'The image is installed without devDependencies: this import would fail there, and only there.',
      severity: 'error',
      from: PRODUCTION,
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'no-undeclared-package',
      comment: 'A package that only another package brings disappears, or changes its version, when that one is updated.',
      severity: 'error',
      from: { path: '^(apps|libs|bench)/' },
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'resolvable',
      comment: 'No rule holds for an import that is not found.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['node', 'require', 'import', 'types'] },
  },
};
