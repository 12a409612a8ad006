import { readFileSync } from 'node:fs';
import type { Answer } from './traffic';

export interface Call {
  url: string;
  headers: Record<string, string>;
  body?: string;
}

/** The calls of README.md, "Try it", at another address. */
function readmeCalls(baseUrl: string): Call[] {
  const [, block] = /^## Try it\n+```sh\n(.*?)^```/ms.exec(readFileSync('README.md', 'utf8')) ?? [];
  if (!block) throw new Error('README.md has no calls to try.');
  return block
    .split(/^curl -s /m)
    .slice(1)
    .map((call) => {
      const [, url] = /^http:\/\/localhost:3000(\S+)/.exec(call) ?? [];
      if (!url) throw new Error(`README.md has a call that this test cannot read: ${call}`);
      const headers = [...call.matchAll(/-H '([^:]+): ([^']+)'/g)].map(([, name, value]) => [name, value]);
      return { url: `${baseUrl}${url}`, headers: Object.fromEntries(headers), body: /-d '([^']+)'/s.exec(call)?.[1] };
    });
}

/** @returns the answer of each call, in order */
export async function tryReadmeCalls(baseUrl: string): Promise<Answer[]> {
  const answers = [];
  for (const { url, headers, body } of readmeCalls(baseUrl)) {
    const response = await fetch(url, { method: body ? 'POST' : 'GET', headers, ...(body && { body }) });
    answers.push({ status: response.status, body: (await response.json()) as Answer['body'] });
  }
  return answers;
}
