import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { DEFAULT_ACCESS, type AccessType } from '@app/contracts/access';
import { SetDocument, SetDocumentRequest, type SetDocumentResult } from '@app/contracts/documents.set';
import { ApiError } from '@app/contracts/error';
import { attempt } from '@app/postgres/attempt';
import { OutboxRelay } from '@app/postgres/outbox/outbox';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { DocumentsRepository, type NewDocument } from '../db/documents.repository';

/** Sets the folder and the access type of a document. A repetition changes nothing. */
@Controller()
export class SetDocumentHandler {
  constructor(
    private readonly documents: DocumentsRepository,
    private readonly outbox: OutboxRelay,
  ) {}

  @MessagePattern(SetDocument.pattern)
  async setDocument(@Payload() request: SetDocumentRequest, @Ctx() context: DeliveryContext): Promise<SetDocumentResult> {
    this.outbox.requireRoom();
    const { apiKey, deadline } = context;
    const document = { ...request, access: request.access ?? DEFAULT_ACCESS, apiKey, deadline };
    const stored = await attempt(deadline, 'The document could not be stored in time; nothing was changed.', async () => {
      const written = await this.documents.set(document);
      if (written.outcome === 'unknownApiKey') throw new ApiError('UNAUTHENTICATED', 'The API key is unknown.');
      return written.outcome === 'stored' ? written : undefined;
    });
    this.outbox.wake();
    return answerOf(document, stored);
  }
}

function answerOf(
  { access, folderId }: Pick<NewDocument, 'folderId'> & { access: AccessType },
  { version, changed }: { version: number; changed: boolean },
): SetDocumentResult {
  const message = 'Document set successfully.';
  const data = { success: true, message, access, ...(folderId !== undefined && { folderId }), version };
  return { status: 'success', message, data, version, changed };
}
