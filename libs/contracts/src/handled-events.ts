import { DocumentChangedData, UserAddedData, UserErasedData, UserRemovedData } from './events.users';
import { Described, Identifier, Nested } from './fields';

/** Bodies of the events that handlers of this system read: the fields that they use. The tenant is in a header. */

const Time = () => Described({ type: 'string', description: 'Time of the event, RFC 3339 in UTC.' }, { optional: true });

export class UserAddedEvent {
  @Nested(() => UserAddedData, 'Data of the event.')
  data: UserAddedData;

  @Time()
  time?: string;
}

export class UserRemovedEvent {
  @Nested(() => UserRemovedData, 'Data of the event.')
  data: UserRemovedData;

  @Time()
  time?: string;
}

export class UserErasedEvent {
  @Identifier('Identifier of the event.')
  id: string;

  @Nested(() => UserErasedData, 'Data of the event.')
  data: UserErasedData;
}

export class DocumentChangedEvent {
  @Nested(() => DocumentChangedData, 'Data of the event.')
  data: DocumentChangedData;

  @Time()
  time?: string;
}
