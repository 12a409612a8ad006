import type { Row } from './harness/bounds';
import { describeRows } from './harness/describe-rows';

// The script chooses the rows by name.
const { CLUSTER_ROWS: rows, CLUSTER_STRICT: strict } = process.env;
if (!rows) throw new Error('CLUSTER_ROWS is not set: run "npm run test:cluster -- PART".');

describeRows('a cluster', JSON.parse(rows) as Row[], strict === 'true', { tickSeconds: 6 });
