/**
 * What is under way, by a key that is never used again.
 *
 * V8's Map leaves a table that is full of deleted entries for a new one, and the old table points to the new one and to what was in it. Once
 * such a table has survived two collections, everything that passes through the Map survives too, until the next full collection. Through
 * this one only empty boxes do.
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

  /** Removes it. @returns what it was, undefined when it is gone already */
  take(key: string): Value | undefined {
    const box = this.boxes.get(key);
    if (!box) return undefined;
    const { value } = box;
    box.value = undefined;
    this.boxes.delete(key);
    return value;
  }

  /** Of now: what is added or taken while they are looked at makes no difference. */
  keys(): string[] {
    return [...this.boxes.keys()];
  }
}
