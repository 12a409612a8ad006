/**
 * Items in flight, by a key that is never used again.
 *
 * V8's Map replaces a table full of deleted entries by a new one, and the old table keeps pointers to the new table and to the old entries. Once
 * such a table has survived two collections, all later entries of the Map survive until the next full collection. Here these entries are only
 * empty boxes.
 */
export class InFlight<Value> {
  private readonly boxes = new Map<string, { value?: Value }>();

  get size(): number {
    return this.boxes.size;
  }

  get(key: string): Value | undefined {
    return this.boxes.get(key)?.value;
  }

  set(key: string, value: Value): void {
    this.boxes.set(key, { value });
  }

  /** Removes an item. @returns the item, or undefined when the key is unknown or was taken before */
  take(key: string): Value | undefined {
    const box = this.boxes.get(key);
    if (!box) return undefined;
    const { value } = box;
    box.value = undefined;
    this.boxes.delete(key);
    return value;
  }

  /** A snapshot: changes made while iterating do not affect it. */
  keys(): string[] {
    return [...this.boxes.keys()];
  }
}
