import { interleaved } from '../lib/rounds.mjs';

export const title = 'notifications/add, 2 recipients, 64 connections';

/** @param {import('../lib/laboratory.mjs').Laboratory} laboratory */
export async function run(laboratory, { rounds, seconds }) {
  const load = { operation: 'notifications/add', workload: { name: 'addNotification', recipients: 2 }, seconds };
  const { ours, plain, direct } = await interleaved(laboratory, ['ours', 'plain', 'direct'], () => load, { rounds });
  return { ours, plain, direct };
}
