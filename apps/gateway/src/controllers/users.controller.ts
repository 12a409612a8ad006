import { Controller } from '@nestjs/common';
import { AddUsers } from '@app/contracts/users.add';
import { DeleteUsers } from '@app/contracts/users.delete';
import { EraseUsers } from '@app/contracts/users.erase';
import { GetUsers } from '@app/contracts/users.get';
import { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import { answer, Called, Operation, type Call } from './operation';

@Controller()
export class UsersController {
  constructor(private readonly rabbit: RabbitClient) {}

  @Operation(AddUsers)
  add(@Called(AddUsers) call: Call<typeof AddUsers>) {
    return answer(this.rabbit, call);
  }

  @Operation(DeleteUsers)
  delete(@Called(DeleteUsers) call: Call<typeof DeleteUsers>) {
    return answer(this.rabbit, call);
  }

  @Operation(EraseUsers)
  erase(@Called(EraseUsers) call: Call<typeof EraseUsers>) {
    return answer(this.rabbit, call);
  }

  @Operation(GetUsers)
  get(@Called(GetUsers) call: Call<typeof GetUsers>) {
    return answer(this.rabbit, call);
  }
}
