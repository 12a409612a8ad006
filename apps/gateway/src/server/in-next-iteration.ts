/** @returns runs the work in the next iteration of the event loop, once for all calls until then */
export function inNextIteration(work: () => void): () => void {
  let isScheduled = false;
  return () => {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      work();
    });
  };
}
