import { Controller } from '@nestjs/common';
import { SetDocument } from '@app/contracts/documents.set';
import { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import { answer, Called, Operation, type Call } from './operation';

@Controller()
export class DocumentsController {
  constructor(private readonly rabbit: RabbitClient) {}

  @Operation(SetDocument)
  set(@Called(SetDocument) call: Call<typeof SetDocument>) {
    return answer(this.rabbit, call);
  }
}
