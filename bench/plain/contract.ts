import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  IsArray,
  IsBoolean,
  IsDefined,
  IsInt,
  IsObject,
  IsOptional,
  IsString,
  Max,
  MaxLength,
  Min,
  MinLength,
  ValidateNested,
} from 'class-validator';

export const ADD = 'notifications.add';
export const GET = 'notifications.get';
export const QUEUE = 'plain.notifications';

export class UserDto {
  @IsString()
  @MinLength(1)
  @MaxLength(256)
  userId: string;

  @IsOptional()
  @IsString()
  @MaxLength(320)
  name?: string;

  @IsOptional()
  @IsString()
  @MaxLength(320)
  email?: string;
}

export class AddNotificationDto {
  @IsString()
  @MinLength(1)
  @MaxLength(256)
  organizationId: string;

  @IsString()
  @MinLength(1)
  @MaxLength(256)
  documentId: string;

  @IsOptional()
  @IsString()
  @MaxLength(256)
  locationId?: string;

  @IsDefined()
  @ValidateNested()
  @Type(() => UserDto)
  actionUser: UserDto;

  @IsString()
  @MinLength(1)
  @MaxLength(10_000)
  displayHeadlineMessageTemplate: string;

  @IsOptional()
  @IsObject()
  displayHeadlineMessageTemplateData?: Record<string, unknown>;

  @IsOptional()
  @IsString()
  @MaxLength(10_000)
  displayBodyMessage?: string;

  @IsOptional()
  @IsArray()
  @ArrayMaxSize(1000)
  @ValidateNested({ each: true })
  @Type(() => UserDto)
  notifyUsers?: UserDto[];

  @IsOptional()
  @IsBoolean()
  notifyAll?: boolean;

  @IsOptional()
  @IsObject()
  notificationSourceData?: Record<string, unknown>;
}

export class GetNotificationsDto {
  @IsString()
  @MinLength(1)
  @MaxLength(256)
  organizationId: string;

  @IsString()
  @MinLength(1)
  @MaxLength(256)
  userId: string;

  @IsOptional()
  @IsInt()
  @Min(1)
  @Max(1000)
  pageSize?: number;
}

export class AddNotificationBody {
  @IsDefined()
  @ValidateNested()
  @Type(() => AddNotificationDto)
  data: AddNotificationDto;
}

export class GetNotificationsBody {
  @IsDefined()
  @ValidateNested()
  @Type(() => GetNotificationsDto)
  data: GetNotificationsDto;
}

/** The message that goes over the queue: the gateway has checked the token. */
export interface OfTenant<T> {
  apiKey: string;
  request: T;
}
