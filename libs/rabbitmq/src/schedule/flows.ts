import { LIGHT, type Account, type FairScheduleOptions, type Flow, type Share, type Work } from './scheduled-work';

type CostOf = (work: Work) => number;

export function shareOf(shares: Map<string, Share>, name: string, { weights, preference }: FairScheduleOptions): Share {
  let share = shares.get(name);
  if (!share) {
    share = {
      paidUntil: 0,
      weight: weights?.[name] ?? 1,
      isPreferred: name === preference?.share,
      isOther: preference?.others.includes(name) ?? false,
      flows: new Map(),
      waiting: new Set(),
      now: 0,
    };
    shares.set(name, share);
  }
  return share;
}

export function flowOf(share: Share, name: string): Flow {
  let flow = share.flows.get(name);
  if (!flow) share.flows.set(name, (flow = { paidUntil: 0, heavy: [], light: [], running: 0, sharing: 0, lightAt: -Infinity }));
  return flow;
}

export const inOrder = <One extends Account>(accounts: Iterable<One>): One[] =>
  [...accounts].sort((a, b) => a.paidUntil - b.paidUntil);

export function wait(share: Share, flow: Flow, work: Work, cost: number): void {
  (cost <= LIGHT ? flow.light : flow.heavy).push(work);
  share.waiting.add(flow);
}

/** Takes the first work out of a queue of the flow. */
export function takeFirst(share: Share, flow: Flow, queue: Work[]): Work {
  const work = queue.shift()!;
  if (waitingOf(flow) === 0) share.waiting.delete(flow);
  return work;
}

/** Takes the wanted work out of all flows. */
export function takeOut(shares: Iterable<Share>, isWanted: (work: Work) => boolean): { share: Share; flow: Flow; work: Work }[] {
  const taken: { share: Share; flow: Flow; work: Work }[] = [];
  for (const share of shares) {
    for (const flow of [...share.waiting]) {
      for (const queue of [flow.heavy, flow.light]) {
        for (const work of queue.splice(0)) {
          if (isWanted(work)) taken.push({ share, flow, work });
          else queue.push(work);
        }
      }
      if (waitingOf(flow) === 0) share.waiting.delete(flow);
    }
  }
  return taken;
}

/** Asks all waiting work of a flow for its cost again. */
export function sortAgain({ heavy, light }: Flow, costOf: CostOf): void {
  for (const work of [...heavy.splice(0), ...light.splice(0)]) (costOf(work) <= LIGHT ? light : heavy).push(work);
}

/** Work that has become heavy since it came must not stand before light work. */
export function sortFirst({ heavy, light }: Flow, costOf: CostOf): void {
  while (light.length > 0 && costOf(light[0]) > LIGHT) heavy.push(light.shift()!);
}

/** Flows without work lose their debt. */
export function forgetIdle({ flows }: Share): void {
  for (const [name, flow] of flows) if (waitingOf(flow) === 0 && flow.running === 0) flows.delete(name);
}

/** The flows with the most waiting work. */
export function busiestOf(shares: ReadonlyMap<string, Share>, most: number): { share: string; flow: string; waiting: number }[] {
  return [...shares]
    .flatMap(([share, { flows }]) => [...flows].map(([name, flow]) => ({ share, flow: name, waiting: waitingOf(flow) })))
    .filter(({ waiting }) => waiting > 0)
    .sort((a, b) => b.waiting - a.waiting)
    .slice(0, most);
}

const waitingOf = ({ heavy, light }: Flow): number => heavy.length + light.length;
