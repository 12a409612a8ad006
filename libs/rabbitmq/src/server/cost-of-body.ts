import { LIGHT_COMMAND_BYTES } from '@app/amqp/messages/command-format';
import { ALL_MESSAGES } from '@app/contracts/all-messages';
import type { Delivery } from '../delivery/delivery';
import { LIGHT } from '../schedule/scheduled-work';

/** Of a heavy body. A command with 1000 recipients costs half of the budget. */
const COST_OF_KIBIBYTE = 4;
/** Of the smallest heavy body. Up to {@link MOST_OF_SMALL} a larger one costs more in proportion. */
const COST_OF_SMALLEST = 8;
const MOST_OF_SMALL = 32;

const LIGHT_BYTES: ReadonlyMap<string, number | undefined> = new Map(
  ALL_MESSAGES.map(({ pattern, lightBytes }) => [pattern, lightBytes]),
);

/** Cost of a command or event, as far as its body says it. */
export function costOfBody({ message: { content }, context: { pattern } }: Delivery): number {
  const bytes = content.length;
  const lightBytes = LIGHT_BYTES.get(pattern) ?? LIGHT_COMMAND_BYTES;
  if (bytes < lightBytes) return LIGHT;
  const small = Math.min(MOST_OF_SMALL, (bytes / lightBytes) * COST_OF_SMALLEST);
  return Math.max(small, Math.ceil(bytes / 1024) * COST_OF_KIBIBYTE);
}
