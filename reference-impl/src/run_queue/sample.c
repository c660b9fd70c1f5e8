/* A tool that Genesis can make: it writes the letters below into slot 0. */
#include <stdio.h>
#include <string.h>

int main(int count, char **words) {
    if (count > 1 && strcmp(words[1], "--list") == 0) {
        puts("AID.GENESIS.SAMPLE.v1");
        return 0;
    }
    const char *letters = "@NONCE@";
    while (getchar() != EOF) {
    }
    printf("{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{}\",\"error\":\"\",\"ds_state\":{\"slots\":{\"0\":"
           "{\"type\":\"text\",\"provenance\":\"genesis\",\"content_json\":\"\\\"%s\\\"\",\"size_bytes\":%zu}}}}\n",
           letters, strlen(letters) + 2);
    return 0;
}
