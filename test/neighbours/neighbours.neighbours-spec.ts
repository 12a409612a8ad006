import { describeRows } from './describe-rows';
import type { Row } from './row';

// The script chooses the rows by name.
const { NEIGHBOUR_ROWS: rows } = process.env;
if (!rows) throw new Error('NEIGHBOUR_ROWS is not set: run "npm run test:neighbours -- PART".');

describeRows('neighbours', JSON.parse(rows) as Row[]);
