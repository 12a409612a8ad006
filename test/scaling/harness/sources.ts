import type { Trigger } from './scaled-object';

/** Where the values of the triggers come from. */
export interface Sources {
  /** Management API, with the account of the scaler. */
  managementUrl: string;
  prometheusUrl: string;
}

/** The value of a trigger, asked for as KEDA does. */
export async function valueOf({ type, metadata }: Trigger, { managementUrl, prometheusUrl }: Sources): Promise<number> {
  if (type === 'prometheus') {
    const parameters = new URLSearchParams({ query: metadata.query });
    const { data } = (await ask(new URL(`/api/v1/query?${parameters.toString()}`, prometheusUrl))) as {
      data: { result: [Sample] };
    };
    return Number(data.result[0].value[1]);
  }
  const parameters = new URLSearchParams({
    page: '1',
    use_regex: 'true',
    pagination: 'false',
    name: metadata.queueName,
    page_size: metadata.pageSize,
  });
  const { items } = (await ask(new URL(`/api/queues/%2F?${parameters.toString()}`, managementUrl))) as { items: Queue[] };
  // Absent until the broker has counted for the first time.
  return items.reduce((sum, { messages_ready: ready = 0 }) => sum + ready, 0);
}

interface Sample {
  value: [time: number, value: string];
}

interface Queue {
  name: string;
  messages_ready?: number;
}

async function ask(url: URL): Promise<unknown> {
  const { username, password } = url;
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  url.username = url.password = '';
  const response = await fetch(url, { headers: username ? { authorization } : {} });
  if (!response.ok) throw new Error(`${url.pathname}: ${response.status} ${await response.text()}`);
  return response.json();
}
