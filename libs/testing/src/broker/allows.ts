import type { ChannelModel, ConfirmChannel } from 'amqplib';

export type Action = (channel: ConfirmChannel) => Promise<unknown>;

/** Whether the broker allows the account of a connection an action. @throws Error when it fails for another reason */
export async function allows(model: ChannelModel, action: Action): Promise<boolean> {
  const channel = await model.createConfirmChannel();
  let refusal: { code?: number } | undefined;
  const ended = new Promise<void>((resolve) => {
    channel.once('error', (error: { code?: number }) => {
      refusal = error;
      resolve();
    });
  });
  await Promise.race([action(channel).catch((error: unknown) => (refusal ??= error as { code?: number })), ended]);
  if (!refusal) await channel.close();
  else if (refusal.code !== 403) throw new Error('refused for another reason', { cause: refusal });
  return refusal === undefined;
}

export const publish =
  (exchange: string, key: string): Action =>
  (channel) => {
    channel.publish(exchange, key, Buffer.from('{}'));
    return channel.waitForConfirms();
  };
