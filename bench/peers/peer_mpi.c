/* Measures OpenMPI's half round trip between two processes. bench_transport compiles and runs it.
 *
 *     mpirun -n 2 peer_mpi BYTES COUNT [BYTES COUNT ...]        prints "BYTES microseconds"
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char** words) {
  int rank;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 1; i + 1 < count; i += 2) {
    const long bytes = atol(words[i]), turns = atol(words[i + 1]);
    /* Touch the memory: untouched pages all map to one page of zeros, which is fast to read. */
    char* out = memset(malloc(bytes), 1, bytes);
    char* in = memset(malloc(bytes), 1, bytes);
    double start = 0;
    for (long turn = -1; turn < turns; ++turn) {
      if (turn == 0) start = MPI_Wtime();
      if (rank == 0) MPI_Send(out, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(in, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank == 1) MPI_Send(out, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("%ld %.4f\n", bytes, (MPI_Wtime() - start) / turns / 2 * 1e6);
    free(out);
    free(in);
  }
  MPI_Finalize();
  return 0;
}
