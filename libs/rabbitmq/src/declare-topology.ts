/** Declares every exchange, queue and binding; needs an account with full rights. */
export async function declareTopology(_url: string, _options: { caFile?: string } = {}): Promise<void> {
  throw new Error('Not written yet.');
}
