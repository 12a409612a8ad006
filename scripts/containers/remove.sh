#!/bin/sh
# Removes everything of the engine whose name has a word, and the images of that name: remove.sh WORD
: "${1:?Without a word this would be everything that the engine has.}"
docker ps --all --quiet --filter "name=$1" | xargs -r docker rm --force --volumes
docker network ls --quiet --filter "name=$1" | xargs -r docker network rm
docker volume ls --quiet --filter "name=$1" | xargs -r docker volume rm
docker image ls --quiet "$1" | sort -u | xargs -r docker image rm --force
