import { Injectable, type ArgumentMetadata, type PipeTransform } from '@nestjs/common';
import type { BodyClass } from '@app/contracts/message';
import { validateBody } from '@app/contracts/validate';

const NOT_CONTRACTS = new Set<unknown>([undefined, Object, Array, String, Number, Boolean]);

/**
 * Validates the `@Payload()` of every handler against its contract class: a message is untrusted input, whoever published it.
 *
 * @throws ApiError INVALID_ARGUMENT for the caller; a plain Error when the parameter has no contract class, because it would go unchecked
 */
@Injectable()
export class ContractPipe implements PipeTransform {
  transform(value: unknown, { type, metatype }: ArgumentMetadata): unknown {
    if (type !== 'body') return value;
    if (NOT_CONTRACTS.has(metatype)) throw new Error('The @Payload() of a handler must have a contract class as its type.');
    return validateBody(metatype as BodyClass<object>, value);
  }
}
