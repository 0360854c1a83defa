#include "apps/command.h"

int main(int count, char** words) { return troupe::apps::run_program(count, words); }
