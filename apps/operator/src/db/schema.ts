import { Audit1796601600000 } from './migrations/1796601600000-audit';

/** Database settings of the operator's page. Nothing else uses the schema. */
export const DATABASE = { schema: 'operator', migrations: [Audit1796601600000] };
