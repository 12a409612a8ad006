/** A queue of items of several owners. Owners take turns: an owner with many items delays another one by one item at most. */
export class FairQueue<Item> {
  private readonly byOwner = new Map<string, Item[]>();

  get isEmpty(): boolean {
    return this.byOwner.size === 0;
  }

  /** Whether any item of the owner waits. */
  has(owner: string): boolean {
    return this.byOwner.has(owner);
  }

  add(owner: string, item: Item): void {
    const items = this.byOwner.get(owner);
    if (items) items.push(item);
    else this.byOwner.set(owner, [item]);
  }

  /** Removes items in turn until `accept` refuses one, which stays the first. */
  take(accept: (item: Item) => boolean): void {
    for (;;) {
      const [next] = this.byOwner;
      if (!next) return;
      const [owner, items] = next;
      if (!accept(items[0])) return;
      this.shift(owner, items);
    }
  }

  /** Removes items of the next owner until `accept` refuses one, which stays the first of the owner. */
  takeOfOne(accept: (item: Item) => boolean): void {
    const [next] = this.byOwner;
    if (!next) return;
    const [owner, items] = next;
    let taken = 0;
    while (taken < items.length && accept(items[taken])) taken++;
    items.splice(0, taken);
    this.rotate(owner, items);
  }

  /** Removes the first item of the next owner that may have a turn. The others keep their places. */
  takeFirst(mayTake: (owner: string) => boolean): Item | undefined {
    for (const [owner, items] of this.byOwner) if (mayTake(owner)) return this.shift(owner, items);
    return undefined;
  }

  /** Removes the last item of the next owner. */
  takeLast(): Item | undefined {
    const [next] = this.byOwner;
    if (!next) return undefined;
    const [owner, items] = next;
    const last = items.pop();
    this.rotate(owner, items);
    return last;
  }

  /** @returns false when the item is not in the queue */
  remove(owner: string, item: Item): boolean {
    const items = this.byOwner.get(owner) ?? [];
    const index = items.indexOf(item);
    if (index < 0) return false;
    items.splice(index, 1);
    if (items.length === 0) this.byOwner.delete(owner);
    return true;
  }

  /** Removes all items that `isKept` refuses. The others keep their places. */
  keep(isKept: (item: Item) => boolean): void {
    for (const [owner, items] of this.byOwner) {
      const kept = items.filter(isKept);
      if (kept.length > 0) this.byOwner.set(owner, kept);
      else this.byOwner.delete(owner);
    }
  }

  private shift(owner: string, items: Item[]): Item | undefined {
    const first = items.shift();
    this.rotate(owner, items);
    return first;
  }

  /** The owner has had a turn. */
  private rotate(owner: string, items: Item[]): void {
    this.byOwner.delete(owner);
    if (items.length > 0) this.byOwner.set(owner, items);
  }
}
