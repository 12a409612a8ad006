import { Histogram } from 'prom-client';

export const batchSize = new Histogram({
  name: 'users_batch_size',
  help: 'Calls of users/add with few users that shared one commit.',
  buckets: [1, 2, 4, 8, 16, 32, 64],
});
