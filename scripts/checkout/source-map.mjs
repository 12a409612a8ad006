import { decode, encode } from '@jridgewell/sourcemap-codec';

/** @typedef {import('@jridgewell/sourcemap-codec').SourceMapSegment} Segment */

/** Sources of a bundle that are not those of a package, whose maps name paths of their own. */
const OWN = /^\.\.\/(apps|libs)\//;

/**
 * Leaves packages out of the source map of a bundle. Node parses all of it for the first stack that is asked for, and amqplib asks for one at the
 * end of each connection: with packages this took half a second, in which the process did not connect again.
 * @template {{ sources: string[], mappings: string }} M
 * @param {M} map
 * @returns {M}
 */
export function withoutPackages(map) {
  const isOwn = map.sources.map((source) => OWN.test(source));
  let wasOwn = false;
  const lines = decode(map.mappings).map((segments) =>
    segments.flatMap((/** @type {Segment} */ segment) => {
      const own = segment.length > 1 && isOwn[Number(segment[1])];
      const ends = wasOwn && !own;
      wasOwn = own;
      if (own) return [segment];
      // Without a segment that says so, everything up to the next one would belong to the last line of ours.
      return ends ? [/** @type {Segment} */ ([segment[0]])] : [];
    }),
  );
  return { ...map, mappings: encode(lines) };
}
